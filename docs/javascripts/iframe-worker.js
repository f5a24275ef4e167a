// Lets the search run where the site is opened as files: a browser starts no worker from a file, so a hidden frame runs
// the worker's script instead. From a server the browser's own workers are used.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.src = url;
      this.started = new Promise((done) => script.addEventListener("load", done));
      this.inner = inner;
      inner.document.body.append(script);
    }

    postMessage(data) {
      this.started.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })));
    }
  };
}
