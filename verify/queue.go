package verify

import (
	"container/heap"
)

// before is the order of the queue.
func (it *item) before(o *item) bool {
	return it.order < o.order || it.order == o.order && it.turn < o.turn
}

// queue is a heap of items that know where they are in it.
type queue struct {
	items []*item
	less  func(a, b *item) bool
}

func (q *queue) add(it *item) {
	it.in = q
	heap.Push(q, it)
}

func (q *queue) Len() int { return len(q.items) }

func (q *queue) Less(i, j int) bool { return q.less(q.items[i], q.items[j]) }

func (q *queue) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].at, q.items[j].at = i, j
}

func (q *queue) Push(v any) { it := v.(*item); it.at = len(q.items); q.items = append(q.items, it) }

func (q *queue) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = nil
	q.items, it.in = q.items[:last], nil
	return it
}
