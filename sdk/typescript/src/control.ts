// What users may demand: opting out, starting over as another device, and erasure.

import type { Client } from "./client.js";
import { client } from "./default.js";
import { consentOf } from "./privacy.js";
import { sequenceText } from "./queue.js";
import { AHEAD, type Session } from "./session.js";
import type { Consent, Maybe } from "./types.js";
import { uuid } from "./uuid.js";
import { all, then } from "./vault.js";

/** Records that `eraseMe` deletes. */
const PERSONAL = ["device", "launch", "answer", "person", "past", "skan", "skanDocument"];

/** Stops recording, also after a restart, and deletes unsent events. The server is told once. */
export const optOut = (): Promise<void> => optOutOf(client);

/** Resumes recording after `optOut` or `eraseMe`. */
export const optIn = (): Promise<void> => optInOf(client);

/** Forgets the user, the consent and the attribution, and continues as a new device. */
export const reset = (): Promise<void> => resetOf(client);

/**
 * Deletes all data on the device and on the server, and stops recording. Resolves to true if the server has confirmed
 * it; otherwise the SDK repeats the request, also after a restart, unless the server refused it. An opt-out stays.
 */
export const eraseMe = (): Promise<boolean> => eraseMeOf(client);

export function optOutOf(instance: Client): Promise<void> {
  return change(instance, (session) => {
    const { privacy, enrolment, sender } = session;
    const refusal = { ...consentOf(privacy.record), adUserData: false, adPersonalization: false };
    // A server that has never heard of the device is not told.
    const told = privacy.record.stop || !isKnown(session) ? undefined : refuse(session, refusal);
    const stopped = privacy.change((record) => ({ ...record, ...refusal, stop: "out" }));
    enrolment.resolveWaiters(null);
    return all([told, stopped, session.clearStored()], () => void sender.flush());
  });
}

export function optInOf(instance: Client): Promise<void> {
  return change(instance, (session) => {
    const { privacy, enrolment, clock, sender } = session;
    // Another tab may have erased the device.
    if (privacy.record.stop === "erased") renew(session, { firstAt: clock.now() });
    const resumed = privacy.change(({ stop: _stop, ...consent }) => consent);
    // The server knows the refusal of `optOut`, not the consent that it received before.
    enrolment.revision++;
    const { deviceId } = session;
    return changeAfter(session, resumed, () => then(storeDevice(session, deviceId), () => void sender.resume()));
  });
}

export function resetOf(instance: Client): Promise<void> {
  return change(instance, (session) => {
    const { vault, queue, enrolment, privacy } = session;
    const until = queue.sequence;
    // Unsent events keep the earlier device id. A refusal that the server has not received must go ahead of them.
    const isRefused = enrolment.isHeld && !privacy.record.stop;
    const refused = isRefused ? refuse(session, consentOf(privacy.record)) : undefined;
    // Install evidence that the server has received is not sent again, because the click would count twice.
    const { firstAt, referrerSent = false, tokenSent = false, resets = 0 } = enrolment.launch;
    const before = renew(session, { firstAt, referrerSent, tokenSent, resets: resets + 1 });
    const { deviceId } = session;
    const forgotten = privacy.change(({ stop }) => (stop ? { stop } : {}));
    const first = all([refused, forgotten], () => undefined);
    return changeAfter(session, first, () =>
      then(queue.keys(), (keys) =>
        then(vault.get("device"), (stored) => {
          const past = { deviceId: stored ?? before, until };
          if (keys.length > 0) queue.past = [...queue.past, past];
          const writes = [vault.write("past", queue.past), vault.write("person", {})];
          return all(writes, () => then(storeDevice(session, deviceId), () => void session.sender.flush()));
        }),
      ),
    );
  });
}

export function eraseMeOf(instance: Client): Promise<boolean> {
  return change(instance, async (session) => {
    const { vault, queue, enrolment, privacy, sender, confirmed } = session;
    const { eraseToken } = enrolment.launch;
    // A device that never sent anything is unknown to the server.
    const isNeeded = isKnown(session);
    const before = renew(session, { firstAt: session.clock.now() });
    const stopped = privacy.change(({ stop }) => ({ stop: stop === "out" ? stop : "erased" }));
    const cleared = queue.clear();
    enrolment.resolveWaiters(null);
    let key = "";
    await changeAfter(session, undefined, async () => {
      const deviceId = (await vault.get("device")) ?? before;
      // Without a token, the new device has none either, and `no_secure_random` is reported.
      if (isNeeded && eraseToken) {
        await forgetRefusals(session, deviceId);
        key = keyAhead(session, "erase");
        await vault.write(key, { deviceId, eraseToken });
      }
      await Promise.all([stopped, cleared, ...PERSONAL.map((name) => vault.remove(name))]);
    });
    await sender.resume();
    return !isNeeded || confirmed.includes(key);
  });
}

/** Runs a call. If other tabs exist, follows them to their device, queue and privacy record first. */
const change = <T>(instance: Client, run: (session: Session) => Maybe<T>): Promise<T> =>
  instance.call((session) => {
    const { vault, queue } = session;
    const followed = vault.shared ? then(session.storedDeviceId(), () => queue.load()) : [];
    return then(followed, () => then(session.privacy.current(), () => run(session)));
  });

/** Whether the server may have heard of the device. */
const isKnown = ({ enrolment: { launch } }: Session): boolean => launch.tried === true || launch.configured === true;

const keyAhead = ({ queue }: Session, endpoint: string): string =>
  `${AHEAD}${sequenceText(queue.next())}.${endpoint}.${uuid()}`;

/** Stores the refusal, to be sent ahead of everything else. */
function refuse(session: Session, consent: Consent): Maybe<void> {
  const { deviceId, vault, enrolment } = session;
  const { eraseToken, eraseTokenSent } = enrolment.launch;
  const { platform } = enrolment.context.device;
  const token = eraseTokenSent ? undefined : eraseToken;
  return vault.write(keyAhead(session, "configure"), { deviceId, platform, consent, eraseToken: token });
}

/** Removes the refusals of a device that is to be erased. */
async function forgetRefusals({ vault }: Session, deviceId: string): Promise<void> {
  for (const key of await vault.keys(AHEAD)) {
    const request = await vault.read<{ deviceId: string }>(key);
    if (request?.deviceId === deviceId) await vault.remove(key);
  }
}

/** Makes a new device and forgets the person, in memory. Returns the earlier device id. */
function renew(session: Session, launch: Session["enrolment"]["launch"]): string {
  const { deviceId, enrolment } = session;
  session.deviceId = uuid();
  session.forgetPerson();
  enrolment.launch = { ...launch, eraseToken: enrolment.newToken() };
  enrolment.answer = { enabled: enrolment.answer.enabled };
  enrolment.revision++;
  return deviceId;
}

/** Stores the device. The id comes last, because other tabs read the rest when they notice it. */
function storeDevice({ vault, enrolment }: Session, deviceId: string): Maybe<void> {
  const data = [vault.write("answer", enrolment.answer), enrolment.storeLaunch()];
  return all(data, () => vault.set("device", deviceId));
}

/** Runs a change of the stored device after the earlier ones. */
function changeAfter(session: Session, first: Maybe<void>, run: () => Maybe<void>): Maybe<void> {
  const done = (session.lastChange = all<void, void>([session.lastChange, first], run));
  // A settled promise would make the next calls asynchronous.
  return then(done, () => {
    if (session.lastChange === done) session.lastChange = undefined;
  });
}
