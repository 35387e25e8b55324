"""The way out of the house: endpoints, and who may reach them with which key."""
