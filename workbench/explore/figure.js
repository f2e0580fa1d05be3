// A plotly figure that is on the page at once and hears everything.
//
// anywidget gives a widget two seconds to begin; one that takes longer is shown, but hears nothing of Python ever after.
// Plotly is 5 MB, and a page of many figures, or a busy machine, needs longer than that. So plotly is loaded beside the
// widget, once a page; what Python says until then is noted, and heard as soon as plotly is there. A browser may be busy
// for two seconds with other things, too; then the figure listens without anywidget.

const SAID = ["addTraces", "deleteTraces", "moveTraces", "restyle", "relayout", "update", "animate",
  "removeLayoutProps", "removeTraceProps"].map(name => `_py2js_${name}`);

function plotlyOf(model) {
  const pages = (window.workbenchPlotly ??= {}), version = model.get("_plotly_version");
  pages[version] ??= load(model).catch(error => {
    delete pages[version];
    throw error;
  });
  return pages[version];
}

async function load(model) {
  const library = await model.widget_manager.get_model(model.get("_library"));
  const url = URL.createObjectURL(new Blob([library.get("source")], { type: "text/javascript" }));
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Told a height, plotly holds the width as it is too, and the figure follows its page no longer: only what Python says
// of the width counts.
function loosen(model, plots) {
  for (const plot of plots) {
    if (!plot.on || "loose" in plot.dataset) continue;
    plot.dataset.loose = "";
    plot.on("plotly_afterplot", () => {
      if (!model.get("_widget_layout")?.width) delete plot.layout.width;
    });
  }
}

function hearing(model, shown) {
  const noted = [], hears = [], again = {};
  const notes = SAID.map(name => [`change:${name}`, () => noted.push([name, model.get(name)])]);
  notes.forEach(([event, note]) => model.on(event, note));
  const heard = {
    ...model,
    get: name => (name in again ? again[name] : model.get(name)),
    on: (event, tell) => {
      const hear = (...told) => { loosen(model, shown.keys()); tell(...told); };
      hears.push([event, hear]);
      model.on(event, hear);
    },
  };
  const catchUp = () => {
    notes.forEach(([event, note]) => model.off(event, note));
    for (const [name, value] of noted.filter(([, value]) => value !== null)) {
      again[name] = value;
      hears.filter(([event]) => event === `change:${name}`).forEach(([, hear]) => hear());
      delete again[name];
    }
  };
  return [heard, catchUp];
}

// Where anywidget has given up all the same: listen without it, and have Python say how everything stands.
async function keepHearing(model) {
  const real = await model.widget_manager.get_model(model.get("_own_id"));
  try {
    await real._handle_comm_msg({ content: { data: { method: "nothing" } } });
  } catch {
    const hear = Object.getPrototypeOf(Object.getPrototypeOf(real))._handle_comm_msg;
    real.comm.on_msg(message => hear.call(real, message));
    real.comm.send({ method: "request_state" });
  }
}

export default () => {
  const shown = new Map();
  let figure;
  const draw = (made, el) => shown.set(el, made.render({ el }));
  const drawAgain = () => figure.then(made => {
    for (const [el, remove] of shown) {
      remove();
      el.replaceChildren();
      draw(made, el);
    }
  });
  return {
    initialize({ model }) {
      const [heard, catchUp] = hearing(model, shown);
      figure = plotlyOf(model).then(plotly => {
        const made = plotly();
        made.initialize({ model: heard });
        catchUp();
        model.on("change:_widget_data change:_widget_layout", drawAgain);
        return made;
      });
      keepHearing(model);
    },
    async render({ el }) {
      draw(await figure, el);
      return () => {
        shown.get(el)();
        shown.delete(el);
      };
    },
  };
};
