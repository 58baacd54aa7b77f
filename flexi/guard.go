package flexi

import (
	"container/list"
	"sync"
)

// guardSize bounds the memory of a Guard; an attempt is over long before as many others have followed it.
const guardSize = 4096

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

// First counts one send and reports whether it is the first of its attempt.
func (g *Guard) First(attempt string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.seen[attempt]; ok {
		g.age.MoveToBack(e)
		return false
	}
	g.seen[attempt] = g.age.PushBack(attempt)
	if g.age.Len() > guardSize {
		oldest := g.age.Front()
		delete(g.seen, g.age.Remove(oldest).(string))
	}
	return true
}
