package stepped

import (
	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
)

// Thing is what the histories are about. N names the write that made it, so that
// every state that anybody shows leads back to one write.
type Thing struct {
	N int `json:"n"`
}

type item = object.Item[Thing]

// Store is a backend under test, with what a history does to it from outside.
type Store interface {
	backend.Backend[Thing]
	// Compact forgets all history.
	Compact()
	// Save takes a backup of the present state.
	Save() any
	// Restore puts a backup back: as a new epoch, or with the epoch and position
	// that it had. Open watches end plainly and page tokens expire.
	Restore(saved any, newEpoch bool)
}

// Memory is backend/memory with a history of so many changes.
func Memory(history int) Store {
	return memoryStore{memory.New[Thing](&memory.Options{History: history})}
}

type memoryStore struct{ *memory.Store[Thing] }

func (s memoryStore) Save() any { return s.Snapshot() }

func (s memoryStore) Restore(saved any, newEpoch bool) {
	s.Store.Restore(saved.(*memory.Snapshot[Thing]), newEpoch)
}
