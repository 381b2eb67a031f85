// The script of a report: sorting of tables, tooltips of charts, names that switch lines.
// Each figure contains its values as JSON; nothing is fetched.
'use strict';
(() => {
  const svgElement = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const element = (name, css, words) => {
    const out = document.createElement(name);
    if (css) out.className = css;
    if (words !== undefined) out.textContent = words;
    return out;
  };
  const pretty = (value) => {
    if (value === null || !Number.isFinite(value)) return '\u2013';
    const size = Math.abs(value);
    const plain = size === 0 || (size >= 1e-4 && size < 1e7);
    const words = plain ? String(Number(value.toPrecision(Math.max(5, Math.ceil(Math.log10(size + 1))))))
                        : value.toExponential(3);
    return words.replace('-', '\u2212');
  };

  // Formats a column of numbers, all with the largest number of decimals that one of them needs.
  const aligned = (values) => {
    const words = values.map(pretty);
    if (words.some((word) => !/^[\u2212\d.]+$/.test(word))) return words;
    const decimals = Math.max(...words.map((word) => (word.split('.')[1] || '').length));
    return values.map((value) => value.toFixed(decimals).replace('-', '\u2212'));
  };

  // The place of a value on an axis, from 0 to 1.
  const fraction = (axis, value) => {
    const f = axis.log ? Math.log : (v) => v;
    return (f(value) - f(axis.low)) / (f(axis.high) - f(axis.low));
  };

  // The index of the entry of an ascending list whose place(entry) is nearest to `wanted`.
  const nearest = (list, wanted, place) => {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (place(list[middle]) < wanted) low = middle; else high = middle;
    }
    return wanted - place(list[low]) <= place(list[high]) - wanted ? low : high;
  };

  // The pointer's position in the units of a drawing.
  const pointer = (svg, event) => {
    const matrix = svg.getScreenCTM();
    return matrix && new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
  };

  // Shows the tooltip beside the pointer, on the side with room.
  const showTip = (figure, tip, event, rows, heading) => {
    tip.replaceChildren(element('strong', '', heading));
    const table = element('table');
    for (const row of rows) {
      const line = table.insertRow();
      const name = line.insertCell();
      if (row.look) {
        const swatch = element('span', 'swatch ' + row.look);
        name.append(swatch);
      }
      name.append(row.name);
      line.insertCell().textContent = row.value;
    }
    if (rows.length) tip.append(table);
    tip.hidden = false;
    const frame = figure.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    const left = x + 18 + tip.offsetWidth < frame.width ? x + 18 : Math.max(4, x - 18 - tip.offsetWidth);
    tip.style.left = left + 'px';
    tip.style.top = Math.max(4, Math.min(y - 20, frame.height - tip.offsetHeight - 4)) + 'px';
  };

  const watch = (figure, answer) => {
    const tip = element('div', 'tip');
    tip.hidden = true;
    figure.append(tip);
    for (const stage of figure.querySelectorAll('.stage')) {
      const svg = stage.querySelector('svg');
      const [left, top, width, height] = stage.dataset.plot.split(' ').map(Number);
      const marks = svgElement('g', {});
      svg.append(marks);
      const leave = () => { tip.hidden = true; marks.replaceChildren(); };
      const move = (event) => {
        const at = pointer(svg, event);
        const u = at && (at.x - left) / width, v = at && (at.y - top) / height;
        marks.replaceChildren();
        const inside = at && u > -0.02 && u < 1.02 && v >= 0 && v <= 1;
        const found = inside && answer(Math.min(Math.max(u, 0), 1), v, { left, top, width, height }, marks);
        if (!found) return leave();
        showTip(figure, tip, event, found.rows, found.heading);
      };
      stage.addEventListener('pointermove', move);
      stage.addEventListener('pointerdown', move);
      stage.addEventListener('pointerleave', leave);
    }
  };

  const lines = (figure, data) => {
    const shown = data.series.map(() => true);

    watch(figure, (u, v, box, marks) => {
      const visible = data.series.filter((series, i) => shown[i] && series.x.length);
      if (!visible.length) return null;
      const place = (x) => fraction(data.x, x);
      const hits = visible.map((series) => {
        const k = nearest(series.x, u, place);
        return { series, x: series.x[k], y: series.y[k] };
      });
      const best = hits.reduce((a, b) => Math.abs(place(a.x) - u) <= Math.abs(place(b.x) - u) ? a : b);
      const near = hits.filter((hit) => Math.abs(place(hit.x) - place(best.x)) * box.width < 6);
      const x = box.left + box.width * place(best.x);
      marks.append(svgElement('line', { x1: x, x2: x, y1: box.top, y2: box.top + box.height, class: 'cross' }));
      for (const hit of near) {
        const y = 1 - fraction(data.y, hit.y);
        if (y < 0 || y > 1) continue;
        marks.append(svgElement('circle', { cx: box.left + box.width * place(hit.x), cy: box.top + box.height * y, r: 4, class: 'dot ' + hit.series.look }));
      }
      near.sort((a, b) => b.y - a.y);
      const values = aligned(near.map((hit) => hit.y));
      const rows = near.map((hit, i) => ({ look: hit.series.look, name: hit.series.name, value: values[i] }));
      return { heading: data.x.title + ': ' + pretty(best.x), rows };
    });

    const buttons = [...figure.querySelectorAll('.legend button[data-series]')];
    const groups = (i) => figure.querySelectorAll('g.series[data-series="' + i + '"]');
    const refresh = () => buttons.forEach((button, i) => {
      button.setAttribute('aria-pressed', shown[i]);
      groups(i).forEach((group) => group.classList.toggle('off', !shown[i]));
    });
    buttons.forEach((button, i) => {
      button.addEventListener('click', (event) => {
        if (event.shiftKey || event.altKey) shown.fill(false);
        shown[i] = event.shiftKey || event.altKey || !shown[i];
        refresh();
      });
      const dim = (on) => shown.forEach((_, k) => groups(k).forEach((group) => group.classList.toggle('dim', on && k !== i && shown[i])));
      button.addEventListener('pointerenter', (event) => event.pointerType === 'mouse' && dim(true));
      button.addEventListener('pointerleave', () => dim(false));
    });
    const all = figure.querySelector('.legend .all');
    if (all) all.addEventListener('click', () => { shown.fill(!shown.every(Boolean)); refresh(); });
  };

  const heat = (figure, data) => {
    if (!data.values) return;
    const bytes = Uint8Array.from(atob(data.values), (c) => c.charCodeAt(0));
    const values = new Float32Array(bytes.buffer);
    const name = (cells, i) => cells.names ? cells.names[i] : pretty(cells.first + cells.step * i);
    watch(figure, (u, v, box, marks) => {
      const column = Math.min(Math.floor(u * data.columns.count), data.columns.count - 1);
      const row = Math.min(Math.floor(v * data.rows.count), data.rows.count - 1);
      const value = values[row * data.columns.count + column];
      return {
        heading: data.title + ': ' + pretty(value),
        rows: [{ name: data.y, value: name(data.rows, row) }, { name: data.x, value: name(data.columns, column) }],
      };
    });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    table.querySelectorAll('th button').forEach((button, column) => {
      button.addEventListener('click', () => {
        const heading = button.parentElement;
        const up = heading.getAttribute('aria-sort') !== 'ascending';
        table.querySelectorAll('th').forEach((th) => th.removeAttribute('aria-sort'));
        heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
        };
        // Numbers sort before text, in either direction; cells without a number come last.
        const rows = [...body.rows].sort((a, b) => {
          const p = key(a), q = key(b);
          if (typeof p !== typeof q) return typeof p === 'number' ? -1 : 1;
          const order = typeof p === 'number' ? p - q : p.localeCompare(q);
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  };

  // A table that is wider than its page also shows a note: not every browser draws the shadow.
  const marksCut = (scroll) => {
    scroll.after(element('p', 'more', 'Scroll the table sideways for more columns \u2192'));
    const mark = () => scroll.classList.toggle('cut', scroll.scrollWidth > scroll.clientWidth + 1);
    addEventListener('resize', mark);
    mark();
  };

  // Files are compressed in the page and decompressed when they are saved.
  const unpacked = async (link) => {
    const packed = Uint8Array.from(atob(link.href.slice(link.href.indexOf(',') + 1)), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Blob([await new Response(stream).arrayBuffer()], { type: link.dataset.type });
  };
  const saves = (link) => link.addEventListener('click', async (event) => {
    event.preventDefault();
    const file = document.createElement('a');
    try {
      file.href = URL.createObjectURL(await unpacked(link));
      file.download = link.download.replace(/\.gz$/, '');
    } catch {  // without decompression: save the compressed file
      file.href = link.href;
      file.download = link.download;
    }
    file.click();
    if (file.href !== link.href) setTimeout(() => URL.revokeObjectURL(file.href), 60000);
  });
  if (window.DecompressionStream) document.querySelectorAll('a[download]').forEach(saves);

  for (const figure of document.querySelectorAll('figure')) {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    (data.series ? lines : heat)(figure, data);
  }
  document.querySelectorAll('table.sortable').forEach(sortable);
  document.querySelectorAll('.scroll').forEach(marksCut);
  document.documentElement.classList.add('interactive');
})();
