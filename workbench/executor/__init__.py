"""What every real run needs: worker processes, paced links, fault drills, ceilings and scale models."""
