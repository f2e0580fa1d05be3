"""The compiled event loops of a serving cluster: of a fixed size or a changing one, without roles and with them."""
