// Package daemon is the daemon as a function: it wires the packages, starts them in order and stops them in reverse.
//
//	state directory  lock, instance id, token          another holder is an error that names it
//	HTTP             health, metrics, API              up early: a supervisor must see why nothing happens yet
//	webhooks         webhook deliveries                503 until the ledger was opened once; then they are stored
//	NATS             embedded, or waited for
//	ledger           opened, or made with the intake stream; a missing one is waited for, with both ways out said
//	pin              another company or system than the ledger's is a *PinError
//	core             intake, engine, company check     ended and begun anew when the ledger goes away under them
//
// The ledger going away is handled like a start without it, by the same code: the core ends, and the daemon stands where a
// start would have stood. A ledger that comes back or is accepted as empty begins a new core, for which every attempt of the
// old one is an attempt found after a restart.
//
// No write leaves before the ERP has said which company it is (see erp). That check belongs to the first dial and not to the
// start, because intake must go on while the ERP is down.
//
// A stop runs in this order: intake finishes its message, the engine lets writes in flight end and records them, HTTP goes,
// NATS last, since everything before it still records. Each step has its share of FLEXID_DRAIN_TIMEOUT.
package daemon
