"""The parts of the HTML report: what each section holds, and the template, style and script that show it."""
