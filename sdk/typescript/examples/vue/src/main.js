import { configure } from "tributary-sdk";
import { createApp } from "vue";
import Shop from "./Shop.vue";

const settings = new URLSearchParams(location.search);

configure({
  key: settings.get("key") ?? "pk_live_…",
  baseUrl: settings.get("baseUrl") ?? "https://links.example.com",
  pageViews: true,
  onProblem: ({ code, message }) => console.warn(`Tributary: ${code}: ${message}`),
});

createApp(Shop).mount("#app");
