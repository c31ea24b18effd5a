import { Buy } from "./buy";

export default function Page() {
  return (
    <main>
      <h1>Coins</h1>
      <Buy />
    </main>
  );
}
