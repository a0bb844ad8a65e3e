// Chinese has no spaces between its words. `separator` in mkdocs.yml indexes each character by itself; this asks
// for all characters of a word, as the theme would drop the last one.
(() => {
  const QUERY = 2; // the theme's SearchMessageType
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.type === QUERY && typeof message.data === "string") {
      const data = message.data.replace(/["+]?\p{sc=Han}"?/gu, (found) => ` +${found.replace(/["+]/g, "")} `);
      message = { ...message, data };
    }
    return post.call(this, message, ...rest);
  };
})();
