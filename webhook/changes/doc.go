// Package changes reads Flexi's log of changes and publishes it, with a durable cursor of its own.
//
// A hook of Flexi only wakes the reader: hooks get lost, come late, twice and in any order, and their secret proves
// little. The log is read from the cursor on, after every wake-up and every few minutes without one, so a hook that
// never came costs time and nothing else.
//
// One read is one page of the log. Of every record its newest change in the page is published as
// change.<evidence>.<operation>, by rising version; then the cursor moves. A crash in between repeats the page: a consumer
// passes over versions that are not above the last one it has seen of a record.
//
//	no cursor yet            begin after the newest change: the history of a company is not news
//	version below the cursor Flexi was restored from a backup: it is told, and reading begins at the new end
//	another reader           the cursor is moved by compare-and-set; who loses reads on from where the winner is
package changes
