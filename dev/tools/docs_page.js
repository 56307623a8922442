// What Furo's pages lack for a keyboard and a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]'))
    caption.setAttribute("aria-level", "2");
  for (const box of document.querySelectorAll("pre, .table-wrapper"))
    box.tabIndex = 0; // so that keys scroll one that is wider than the page
});
