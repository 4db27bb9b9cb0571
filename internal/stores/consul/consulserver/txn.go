package consulserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// most is how many operations a transaction may have.
const most = 128

type txnOp struct {
	KV *struct {
		Verb, Key    string
		Value        []byte
		Flags, Index uint64
	}
}

type txnAnswer struct {
	Results []txnResult
	Errors  []txnError
}

type txnResult struct{ KV *Entry }

type txnError struct {
	OpIndex int
	What    string
}

// txn does all operations in one step, or none.
func (s *Server) txn(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var ops []txnOp
	if err == nil {
		err = json.Unmarshal(text, &ops)
	}
	if err == nil && len(ops) > most {
		err = fmt.Errorf("transaction contains too many operations (%d > %d)", len(ops), most)
	}
	for i, op := range ops {
		if err == nil && op.KV == nil {
			err = fmt.Errorf("operation %d is none of a key", i)
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	s.mu.Lock()
	next := s.state.clone()
	next.index++
	s.state.index++
	var out txnAnswer
	for i, op := range ops {
		if err := out.do(&next, op); err != nil {
			out.Errors = append(out.Errors, txnError{i, err.Error()})
		}
	}
	if out.Errors == nil {
		s.state = next
		ring(&s.changed)
	}
	s.mu.Unlock()
	s.written()
	code := http.StatusOK
	if out.Errors != nil {
		out.Results, code = nil, http.StatusConflict
	}
	answer(w, code, out)
}

func (out *txnAnswer) do(st *state, op txnOp) error {
	kv := op.KV
	has := st.at(kv.Key)
	stored := func(e *Entry) { // the value is left out
		shown := *e
		shown.Value = nil
		out.Results = append(out.Results, txnResult{&shown})
	}
	switch kv.Verb {
	case "set":
		stored(st.put(kv.Key, kv.Flags, kv.Value))
	case "cas":
		if kv.Index != has {
			return fmt.Errorf("failed to set key %q, index is stale", kv.Key)
		}
		stored(st.put(kv.Key, kv.Flags, kv.Value))
	case "delete":
		st.remove(kv.Key)
	case "delete-cas":
		if kv.Index != has && has != 0 { // what is not there counts as deleted
			return fmt.Errorf("failed to delete key %q, index is stale", kv.Key)
		}
		st.remove(kv.Key)
	case "get":
		if has == 0 {
			return fmt.Errorf("key %q doesn't exist", kv.Key)
		}
		out.Results = append(out.Results, txnResult{st.entries[kv.Key]})
	case "check-index":
		if has == 0 {
			return fmt.Errorf("key %q doesn't exist", kv.Key)
		}
		if kv.Index != has {
			return fmt.Errorf("current modify index %d is not equal to the requested index %d", has, kv.Index)
		}
		stored(st.entries[kv.Key])
	case "check-not-exists":
		if has != 0 {
			return fmt.Errorf("key %q exists", kv.Key)
		}
	default:
		return fmt.Errorf("unknown KV verb %q", kv.Verb)
	}
	return nil
}
