"""Just enough of git's file formats to write a repository with one commit and to read a bundle. Runs no git."""
