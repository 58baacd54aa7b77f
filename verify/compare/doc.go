// Package compare says whether a record that Flexi shows is what was sent.
//
// That a record exists proves little: Flexi drops columns that our user may not write, and a person may have typed another
// document under the same number. So every field that was sent is compared, by its type; nothing is computed, and what the
// server filled in on its own is not looked at.
//
//	type            equal when
//	numeric,integer the decimals are: "350.0", 350, "3.5E2"
//	date            the calendar dates are; a zone behind the date is cut
//	datetime        the instants are, or the wall times where one side has no zone
//	logic           true, "true", 1 and false, "false", 0
//	select          the keys are
//	relation        both name one record: same code, same Flexi id, or the Resolver says so
//	string          the texts are, after NFC and white space; upper-cased where the field is
//	labels          all labels sent are shown; with @removeAll no others
//	rows            as many, and each equal to the row at its place
//	not in Props    relation, number, truth or date if both sides look like one, else text
//
// A sent empty value means "clear" and equals an absent one. What cannot be compared is listed in Result.Skipped, never
// guessed: neither Differ nor silence would be true.
//
// The package is pure: the only way to the outside is the Resolver of the caller.
package compare
