// Names of internal properties, which the build shortens. A name may be listed only if nothing outside the package uses
// it: no option, no field of a request, response or stored record, and no property of the platform.

const NAMES = `
  addWaiting after afterMs afterQueue again answer answered applyResponse askStartUrl attempt batchMax beaconed
  beaconUrl busy cached call callPlatform cancel change classify clear clearStored consentJson context conversions
  current customId deps diagnoseOnce disable drop ends enrol enrolment errors failures fields foreign forgetUserId
  gather globalParams halted hasAskedStartUrl hasFailed head http identify isActive isCalling isComplete isDiagnosed
  isDueAgain isEnabled isForeignReported isHeld isStored isUpToDate json kind last lastChange lastStamp launch leave
  limit load loading lockedRound log noteUrl onDisabled onDocument onDrop onFailure options own ownSince past
  pastDevice pause pending person post prepare privacy queue read record refusals resolveWaiters resume revision round
  run running send sender sentRevision sentVersion session settle soon stamp start startUrl stopped storedDeviceId
  storeDocument storeLaunch timer toCountedEvent track trim unwritten url vault waiters write
`;

export const INTERNAL = new RegExp(`^(${NAMES.trim().split(/\s+/).join("|")})$`);
