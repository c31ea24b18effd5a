// A file of its own, because the page's policy allows no script inside the page.
window.addEventListener("load", () => {
  window.ui = SwaggerUIBundle({
    url: "/openapi.yaml",
    dom_id: "#reference",
    deepLinking: true,
    // No request leaves for an outside validator.
    validatorUrl: null,
    // The key stays in the page's memory and is gone when it is closed.
    persistAuthorization: false,
    displayRequestDuration: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    tryItOutEnabled: true,
  });
});
