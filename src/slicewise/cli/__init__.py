"""The command line: job files and the commands that check, explain and run them. Nothing imports it."""
