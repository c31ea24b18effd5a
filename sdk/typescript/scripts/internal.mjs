// Names of internal properties, which the build shortens. A name may be listed only if nothing outside the package uses
// it: no option, no field of a request, response or stored record, and no property of the platform.

const NAMES = `
  addWaiting after afterMs afterQueue again answer answered applyResponse askStartUrl attempt batchMax beaconed
  beaconUrl begin busy cached call callPlatform cancel change classify clear clearStored confirmed consentJson context
  conversions current deps diagnoseOnce disable drop ends enrol enrolment errors failures fields foreign forgetPerson
  forgetUserId gather globalParams halted hasAskedStartUrl hasFailed head http identify isActive isCalling isComplete
  isDiagnosed isDueAgain isEnabled isForeignReported isHeld isStored isUpToDate json kind last lastChange lastStamp
  launch leave limit load loading loadPast lockedRound log newToken noteUrl onDisabled onDocument onDrop onFailure
  options own ownSince past pastDevice pause pending person post prepare privacy queue read record refusals
  resolveWaiters resume revision round run running send sendAhead sender sentRevision sentVersion session settle soon
  stamp start startUrl stopped storedDeviceId storeDocument storeLaunch timer toCountedEvent track trim unwritten url
  vault waiters write
`;

export const INTERNAL = new RegExp(`^(${NAMES.trim().split(/\s+/).join("|")})$`);
