package flexi

import (
	"encoding/json"
	"time"
)

// Issued is the day on which a document was issued (datVyst), "" when the body does not tell. Suppliers begin to count anew
// each January, so a payable's number says which document it is only together with the year of that day.
func Issued(body json.RawMessage, zone *time.Location) string {
	return Record(object(body)).Issued(zone)
}

// Issued is the day on which a document was issued, "" when the record does not tell.
func (r Record) Issued(zone *time.Location) string {
	day, ok := Day(r.Text("datVyst"), zone)
	if !ok {
		return ""
	}
	return day
}

// Year is the year of a day, "" for none.
func Year(day string) string {
	if len(day) < len(time.DateOnly) {
		return ""
	}
	return day[:4]
}
