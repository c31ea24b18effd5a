import { Tributary } from "./tributary";

export const metadata = { title: "Tributary: Next.js" };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <Tributary />
        {children}
      </body>
    </html>
  );
}
