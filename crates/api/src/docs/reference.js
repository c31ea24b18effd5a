// A separate file, because the content security policy forbids inline scripts.
window.addEventListener("load", () => {
  window.ui = SwaggerUIBundle({
    url: "/openapi.yaml",
    dom_id: "#reference",
    deepLinking: true,
    // Do not send the API description to an external validator.
    validatorUrl: null,
    // Keep the API key in memory only.
    persistAuthorization: false,
    displayRequestDuration: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    tryItOutEnabled: true,
  });
});
