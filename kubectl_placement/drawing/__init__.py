"""SVG elements, and the HTML page that shows a picture."""
