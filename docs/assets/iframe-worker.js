// Browsers start no worker for a page that is opened as a file. There, this runs the search's script in a hidden frame of the page.
// Pages of a server use workers, and this does nothing.
"use strict";
(() => {
  if (location.protocol !== "file:") return;

  const load = (frame, url) =>
    new Promise((done, failed) => {
      const script = frame.contentDocument.createElement("script");
      script.onload = done;
      script.onerror = () => failed(new Error(`${url} cannot be loaded`));
      script.src = url;
      frame.contentDocument.body.append(script);
    });

  class FrameWorker extends EventTarget {
    onmessage = null;

    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.receive(structuredClone(data));
      inner.importScripts = async (...urls) => {
        for (const one of urls) await load(this.frame, one);
      };
      this.ready = load(this.frame, new URL(url, location.href).href);
    }

    receive(data) {
      const message = new MessageEvent("message", { data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      const copy = structuredClone(data);
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data: copy })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = FrameWorker; // the search's script looks for this name
  window.Worker = FrameWorker;
})();
