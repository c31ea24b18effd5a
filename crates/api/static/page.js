// Sends the time zone and the screen, which a redirect cannot collect. The page works without this
// script.
(() => {
  const page = document.querySelector("main[data-hints]");
  if (!page || !window.fetch) return;
  const hints = {
    app: page.dataset.app,
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    screen: {
      width: Math.round(screen.width),
      height: Math.round(screen.height),
      // Truncated to hundredths, like the SDK's scale, so that both get 262 for 2.625.
      scaleHundredths: Math.floor((window.devicePixelRatio || 1) * 100),
    },
  };
  fetch(page.dataset.hints, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(hints),
    credentials: "omit",
    keepalive: true,
  }).catch(() => {});
})();
