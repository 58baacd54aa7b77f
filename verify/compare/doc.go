// Package compare says whether a record that Flexi shows is what was sent.
//
// That a record exists proves little: Flexi drops columns that our user may not write, and a person may have typed another
// document under the same number. So every field that was sent is compared, by its type; nothing is computed, and what the
// server filled in on its own is not looked at.
//
//	type            equal when
//	numeric,integer the decimals are: "350.0", 350, "3.5E2"; what was sent rounded to the decimals that the field keeps
//	date            the days are; a moment is the day that it is in Comparer.Zone (flexi.Day)
//	datetime        the instants are, or the wall times where one side has no zone
//	logic           true, "true", 1 and false, "false", 0
//	select          the keys are
//	relation        both name one record: same code, same Flexi id, or the Resolver says so
//	string          the texts are, after NFC and white space; upper-cased where the field is
//	labels          all labels sent are shown; with @removeAll no others
//	rows            as many, and each equal to the row at its place
//	not in Props    relation, number, truth or date if both sides look like one, else text; a number with more decimals
//	                than any field keeps is rounded to six or two
//
// A sent empty value means "clear" and equals an absent one. What cannot be compared is listed in Result.Skipped, never
// guessed: neither Differ nor silence would be true.
//
// The package is pure: the only way to the outside is the Resolver of the caller.
package compare
