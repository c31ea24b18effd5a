// Names of internal properties, which the build shortens. A name may be listed only if nothing outside the package uses
// it: no option, no field of a request, response or stored record, and no property of the platform.

const NAMES = `
  addWaiting afterMs afterQueue again answer answered applyResponse askStartUrl attempt batchMax beaconUrl beaconed busy
  cached callPlatform cancel change classify clearStored consentJson context conversions current customId defaultLock
  deps diagnoseOnce disable drop ends enrol enrolment errors failures fields foreign forgetUserId gather globalParams halted
  hasAskedStartUrl hasFailed head http identify isActive isCalling isComplete isDiagnosed isDueAgain isEnabled
  isForeignReported isHeld isStored isUpToDate json kind lastChange lastStamp launch leave limit loading lockedRound noteUrl
  onDisabled onDocument onDrop onFailure own ownSince past pastDevice pause pending person post prepare privacy queue
  record refusals resolveWaiters resume revision round run running sender sentRevision sentVersion session
  settle soon stamp startUrl stopped storeDocument storeLaunch storedDeviceId timer toCountedEvent track trim unwritten
  vault waiters
`;

export const INTERNAL = new RegExp(`^(${NAMES.trim().split(/\s+/).join("|")})$`);
