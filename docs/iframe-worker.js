/* Search in a site that is opened from the disk.
 *
 * Browsers start no Worker from file://. The theme's search runs in one, so here an invisible
 * frame takes its place: it loads the same script and passes the same messages.
 */
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...urls) =>
      urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
    this.ready = this.load(url);
  }

  load(url) {
    return new Promise((resolve, reject) => {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    const pass = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    this.ready.then(pass);
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
