// Package config reads, checks and documents the settings of flexid.
//
// Settings come from the environment only, under the prefix FLEXID_. The struct tags of Config are the one source of
// truth: they name each variable, its meaning, default, limits and an example, and Load, Docs and the tests read them.
//
//	tag         meaning
//	env         name without prefix
//	envDefault  value when the variable is unset or empty
//	doc         what it is for, one line
//	shown       text in place of the default in the documentation, where the default is computed
//	allowed     what may be written, in words
//	example     a value that is accepted
//	oneof       the only words allowed
//	min, max    limits of a number, duration or size
//	required    the daemon cannot start without it
//
// Load reports all faults at once, because a daemon that names one fault per start costs an operator one restart each.
// A variable under the prefix that nothing reads is a fault too: a misspelt limit must not be a limit that is not there.
//
// A secret is looked for in this order: a file of the variable's name in systemd's credentials directory, the file that
// the twin <VARIABLE>_FILE names, the variable. It has the type Secret and is never printed, in faults neither.
package config
