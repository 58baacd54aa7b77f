package flexi

// Op is what an event asks for. Attach is made by flexid itself: an update without fields that gives an adopted record
// our external id.
type Op string

// The operations of DESIGN 4, as they are written in events, headers and settings.
const (
	Create Op = "create"
	Update Op = "update"
	Upsert Op = "upsert"
	Storno Op = "storno"
	Delete Op = "delete"
	Attach Op = "attach"
)

// ParseOp reads an operation of an event; "" and unknown words are an error that lists the allowed ones.
func ParseOp(s string) (Op, error) {
	switch op := Op(s); op {
	case Create, Update, Upsert, Storno, Delete:
		return op, nil
	}
	return "", &OpError{Word: s}
}

// OpError is an operation that does not exist.
type OpError struct{ Word string }

func (e *OpError) Error() string {
	return "operation \"" + e.Word + "\" is not one of create, update, upsert, storno, delete"
}
