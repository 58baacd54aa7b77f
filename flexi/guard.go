package flexi

import (
	"container/list"
	"sync"
)

// guardSize bounds the memory of a Guard; an attempt is over long before as many others have followed it.
const guardSize = 1 << 14

// Guard counts sends by attempt. Every rule above it says that an attempt is sent once; this one does not trust them,
// because the price of a slip is a second invoice. Safe for concurrent use.
type Guard struct {
	mu   sync.Mutex
	seen map[string]*list.Element
	age  *list.List // of attempt names, oldest in front
}

// NewGuard returns an empty Guard.
func NewGuard() *Guard {
	return &Guard{seen: make(map[string]*list.Element), age: list.New()}
}

// First counts one send of the attempts in one request and reports whether it is the first of each of them.
func (g *Guard) First(attempts ...string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := true
	for _, attempt := range attempts {
		if e, ok := g.seen[attempt]; ok {
			g.age.MoveToBack(e)
			first = false
			continue
		}
		g.seen[attempt] = g.age.PushBack(attempt)
		if g.age.Len() > guardSize {
			oldest := g.age.Front()
			delete(g.seen, g.age.Remove(oldest).(string))
		}
	}
	return first
}
