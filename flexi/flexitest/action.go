package flexitest

import "strings"

// act carries out an @action. Only the id is looked at; other fields of the record are dropped without a word, as the
// real server does.
func (d *draft) act(action string) (result, *refusal) {
	if d.old == nil {
		e := invalid("", "", "Objekt bude teprve vytvořen, akci '%s' nelze provést.", action)
		return result{}, d.refuse(e)
	}
	d.rec = d.old.clone()
	d.rec.updated = d.t.at
	switch action {
	case "delete":
		return d.remove()
	case "storno":
		if err := d.mayChange(); err != nil {
			return result{}, d.refuse(err)
		}
		if d.ev.doc == nil {
			return result{}, d.refuse(invalid("", "", "Akci 'storno' nelze provést."))
		}
		d.rec.fields["storno"] = "true"
	case "lock", "lock-for-ucetni":
		d.rec.fields["zamekK"] = "zamek.zamceno"
	case "unlock":
		d.rec.fields["zamekK"] = "zamek.otevreno"
	default:
		return result{}, d.refuse(invalid("", "", "Akce '%s' neexistuje.", action))
	}
	d.t.put(d.old, d.rec)
	d.t.logRecord(d.rec, "update", nil)
	return d.result(updated), nil
}

func (d *draft) remove() (result, *refusal) {
	if err := d.mayChange(); err != nil {
		return result{}, d.refuse(err)
	}
	d.t.put(d.old, nil)
	d.t.logRecord(d.old, "delete", nil)
	return d.result(deleted), nil
}

// mayChange says whether a person's lock, the period or a payment forbids to touch the record.
func (d *draft) mayChange() *fieldError {
	switch {
	case d.old.text("zamekK") == "zamek.zamceno":
		return invalid("", "", "Záznam je zamčený.")
	case d.ev.doc != nil && d.t.s.modes.locked(d.old.text("datVyst")):
		return invalid("datVyst", "INVALID", "Doklad nelze vložit do zamčeného období.")
	case isPaid(d.old):
		return invalid("", "INVALID", "Doklad nelze změnit, protože je spárován.")
	}
	return nil
}

func isPaid(r *record) bool {
	return strings.HasPrefix(r.text("stavUhrK"), "stavUhr.uhrazeno") && !number(r.fields["juhSum"]).IsZero()
}
