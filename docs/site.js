// The theme's script needs jQuery, which Debian 12's package of mkdocs links under another name.
// Where it is missing, this opens the menu on narrow screens and the closed sections of the sidebar.
(function () {
  if (window.jQuery) return;
  window.SphinxRtdTheme = window.SphinxRtdTheme || {Navigation: {enable: function () {}}};

  document.querySelectorAll('[data-toggle="wy-nav-top"]').forEach(function (button) {
    button.addEventListener('click', function () {
      document.querySelectorAll('[data-toggle="wy-nav-shift"]').forEach(function (part) {
        part.classList.toggle('shift');
      });
    });
  });

  document.querySelectorAll('.wy-menu-vertical a[href="#"]').forEach(function (link) {
    const section = link.parentElement;
    if (!section.querySelector('ul')) return;
    link.classList.add('opens');
    link.addEventListener('click', function (event) {
      event.preventDefault();
      section.classList.toggle('current');
    });
  });
})();
