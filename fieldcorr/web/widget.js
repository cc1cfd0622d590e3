// The picker as a widget of a notebook (anywidget): its value is the text of a configuration.

import { openStore, parsePattern } from "./core.js";
import { Picker } from "./picker.js";

async function render({ model, el: place }) {
  const store = await openStore(model.get("data"));
  const picker = new Picker(store, {
    pattern: parsePattern(store, model.get("value")),
    changed: (text) => {
      model.set("value", text);
      model.save_changes();
    },
  });
  const follow = () => picker.set(parsePattern(store, model.get("value")));
  model.on("change:value", follow);
  place.classList.add("fieldcorr", "widget");
  place.append(picker.element);
  await picker.drawFields();
  return () => model.off("change:value", follow);
}

export default { render };
