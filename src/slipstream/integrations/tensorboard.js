// The tab: a list of recordings and, below it, the report of the one that is chosen.

export async function render() {
  document.head.innerHTML += `<style>
    html, body { height: 100%; margin: 0; font: 14px/1.4 system-ui, sans-serif; }
    body { display: flex; flex-direction: column; }
    header { display: flex; gap: 8px; align-items: center; padding: 8px 16px; border-bottom: 1px solid #8884; }
    select { font: inherit; max-width: 70vw; }
    iframe { flex: 1; border: 0; width: 100%; }
    p { padding: 16px; max-width: 70ch; }
  </style>`;
  const names = await (await fetch('./traces')).json();
  if (!names.length) {
    const nothing = document.createElement('p');
    nothing.textContent =
      'No recording below the log directory: traces of torch.profiler.tensorboard_trace_handler ' +
      '(*.pt.trace.json) and run folders of slipstream run are shown here.';
    document.body.replaceChildren(nothing);
    return;
  }
  const header = document.createElement('header');
  const label = document.createElement('label');
  label.textContent = 'Recording';
  label.htmlFor = 'recording';
  const chosen = document.createElement('select');
  chosen.id = 'recording';
  for (const name of names) chosen.add(new Option(name === '.' ? '(log directory)' : name, name));
  const said = document.createElement('span');
  said.setAttribute('role', 'status');
  const frame = document.createElement('iframe');
  frame.title = 'Report';
  const show = () => {
    said.textContent = 'diagnosing ...';
    frame.src = './report?trace=' + encodeURIComponent(chosen.value);
  };
  frame.addEventListener('load', () => { said.textContent = ''; });
  chosen.addEventListener('change', show);
  header.append(label, chosen, said);
  document.body.replaceChildren(header, frame);
  show();
}
