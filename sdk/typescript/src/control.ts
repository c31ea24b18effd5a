// What users may demand: opting out, starting over as another device, and erasure.

import type { Client } from "./client.js";
import { client } from "./default.js";
import { consentOf } from "./privacy.js";
import { reportInvalidKey, type Verdict } from "./sender.js";
import { hooks, type Session } from "./session.js";
import type { Maybe } from "./types.js";
import { secret, uuid } from "./uuid.js";
import { all, then } from "./vault.js";

/** Records that `eraseMe` deletes. */
const PERSONAL = ["device", "launch", "answer", "person", "past", "skan", "skanDocument"];
/** Record and endpoint of the erasures that the server has not confirmed. */
const ERASE = "erase";

/** A device to erase, and the proof. It outlives the other data, so that a lost response cannot lose the request. */
interface Erasure {
  deviceId: string;
  eraseToken: string;
}

/** Stops recording, also after a restart, and deletes unsent events. The server is told once. */
export const optOut = (): Promise<void> => optOutOf(client);

/** Resumes recording after `optOut` or `eraseMe`. */
export const optIn = (): Promise<void> => optInOf(client);

/** Forgets the user, the consent and the attribution, and continues as a new device. */
export const reset = (): Promise<void> => resetOf(client);

/**
 * Deletes all data on the device and on the server, and stops recording. Resolves to true if the server has confirmed
 * it; otherwise the SDK repeats the request, also after a restart.
 */
export const eraseMe = (): Promise<boolean> => eraseMeOf(client);

export function optOutOf(instance: Client): Promise<void> {
  return instance.call((session) => {
    const stopped = session.privacy.change((record) => ({
      ...record,
      adUserData: false,
      adPersonalization: false,
      stop: "out",
      told: record.stop === "out" && record.told,
    }));
    session.enrolment.resolveWaiters(null);
    return all([stopped, session.clearStored()], () => void session.sender.flush());
  });
}

export function optInOf(instance: Client): Promise<void> {
  return instance.call((session) => {
    const resumed = session.privacy.change(({ stop: _stop, told: _told, ...consent }) => consent);
    const { deviceId } = session;
    return changeAfter(session, resumed, () => all(storeDevice(session, deviceId), () => void session.sender.resume()));
  });
}

export function resetOf(instance: Client): Promise<void> {
  return instance.call((session) => {
    const { vault, queue, enrolment } = session;
    const until = queue.next();
    // Install evidence that the server has received is not sent again, because the click would count twice.
    const { firstAt, referrerSent = false, tokenSent = false } = enrolment.launch;
    const before = renew(session, { firstAt, referrerSent, tokenSent });
    const { deviceId } = session;
    const forgotten = session.privacy.change(({ stop, told }) => (stop ? { stop, told } : {}));
    return changeAfter(session, forgotten, () =>
      then(queue.keys(), (keys) =>
        then(vault.get("device"), (stored) => {
          const past = { deviceId: stored ?? before, until };
          if (keys.length > 0) queue.past = [...queue.past, past];
          const person = vault.write("person", {});
          const writes = [vault.write("past", queue.past), person, ...storeDevice(session, deviceId)];
          return all(writes, () => void session.sender.flush());
        }),
      ),
    );
  });
}

export function eraseMeOf(instance: Client): Promise<boolean> {
  return instance.call(async (session) => {
    const { vault, queue, enrolment, privacy, sender } = session;
    const { eraseToken, tried, configured } = enrolment.launch;
    const before = renew(session, { firstAt: session.clock.now() });
    const stopped = privacy.change(() => ({ stop: "erased" }));
    const cleared = queue.clear();
    enrolment.resolveWaiters(null);
    await changeAfter(session, undefined, async () => {
      const deviceId = (await vault.get("device")) ?? before;
      // A device that never sent anything is unknown to the server.
      if (eraseToken && (tried || configured)) {
        await vault.write(ERASE, [...(await erasures(session)), { deviceId, eraseToken }]);
      }
      await Promise.all([stopped, cleared, ...PERSONAL.map((name) => vault.remove(name))]);
    });
    await sender.resume();
    return (await erasures(session)).length === 0;
  });
}

/** Makes a new device and forgets the person, in memory. Returns the earlier device id. */
function renew(session: Session, launch: Session["enrolment"]["launch"]): string {
  const { deviceId, enrolment } = session;
  session.deviceId = uuid();
  session.customId = undefined;
  session.forgetUserId();
  session.person = {};
  session.globalParams = {};
  enrolment.launch = { ...launch, eraseToken: secret() };
  enrolment.answer = { enabled: enrolment.answer.enabled };
  enrolment.revision++;
  return deviceId;
}

function storeDevice({ vault, enrolment }: Session, deviceId: string): Maybe<void>[] {
  return [vault.set("device", deviceId), vault.write("answer", enrolment.answer), enrolment.storeLaunch()];
}

/** Runs a change of the stored device after the earlier ones. */
function changeAfter(session: Session, first: Maybe<void>, run: () => Maybe<void>): Maybe<void> {
  return (session.lastChange = all<void, void>([session.lastChange, first], run));
}

const erasures = ({ vault }: Session): Promise<Erasure[]> =>
  Promise.resolve(then(vault.read<Erasure[]>(ERASE), (stored) => stored ?? []));

hooks.prepare = async (session) => (await sendErasures(session)) ?? tellOptOut(session);

async function sendErasures(session: Session): Promise<Verdict | undefined> {
  const { vault, http, onProblem } = session;
  for (;;) {
    const [first, ...rest] = await erasures(session);
    if (!first) return undefined;
    const outcome = await http.post(ERASE, JSON.stringify(first));
    // A server without this endpoint must not block the queue. The request stays stored.
    if (outcome.kind === "later") return outcome.foreign ? undefined : outcome;
    if (outcome.kind === "locked") return reportInvalidKey(onProblem);
    if (outcome.kind !== "done") {
      const message = "The server did not erase the device: it does not know the device or its token.";
      onProblem({ code: "erase_refused", message });
    }
    await (rest.length > 0 ? vault.write(ERASE, rest) : vault.remove(ERASE));
  }
}

/** Tells the server that the user opted out, unless it has never heard of the device. */
async function tellOptOut({ privacy, enrolment, onProblem }: Session): Promise<Verdict | undefined> {
  const { stop, told } = await privacy.current();
  const { tried, configured } = enrolment.launch;
  if (stop !== "out" || told || !(tried || configured)) return undefined;
  const { platform } = enrolment.context.device;
  const consent = consentOf(privacy.record);
  const outcome = await enrolment.post((deviceId) => JSON.stringify({ deviceId, platform, consent }));
  if (outcome.kind === "later") return outcome;
  if (outcome.kind === "locked") return reportInvalidKey(onProblem);
  await privacy.change((record) => (record.stop === "out" ? { ...record, told: true } : record));
  return undefined;
}
