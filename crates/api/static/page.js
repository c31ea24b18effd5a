// Sends time zone and screen, which a redirect cannot collect. The page works without this script.
(() => {
  const page = document.querySelector("main[data-hints]");
  if (!page || !window.fetch) return;
  const hints = {
    app: page.dataset.app,
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    screen: {
      width: Math.round(screen.width),
      height: Math.round(screen.height),
      // Truncated like the SDK's scale, so that 2.625 matches.
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
