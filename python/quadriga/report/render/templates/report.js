// SPDX-License-Identifier: BSD-3-Clause
// python/quadriga/report/render/templates/report.js: shows hover texts at once and a hair line across all lanes; the page works without.
(() => {
  const tip = document.getElementById('tip');
  const text = (shape) => {
    const title = shape.querySelector('title');
    if (title) { shape.dataset.text = title.textContent; title.remove(); }
    return shape.dataset.text;
  };
  const show = (event) => {
    const shape = event.target.closest('svg rect');
    const said = shape && text(shape);
    tip.style.display = said ? 'block' : 'none';
    if (!said) return;
    tip.textContent = said;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
    tip.style.left = Math.max(8, left) + 'px';
    tip.style.top = event.clientY + (below ? 18 : -14 - tip.offsetHeight) + 'px';
  };
  const hair = (event) => {
    const canvas = event.target.closest('.canvas');
    document.querySelectorAll('.cross').forEach((line) => {
      const here = canvas && line.parentNode === canvas;
      line.style.display = here ? 'block' : 'none';
      if (here) line.style.left = event.clientX - canvas.getBoundingClientRect().left + 'px';
    });
  };
  addEventListener('pointermove', (event) => {
    if (event.target.closest) { show(event); hair(event); }
  });
  addEventListener('pointerdown', (event) => event.target.closest && show(event));
})();
