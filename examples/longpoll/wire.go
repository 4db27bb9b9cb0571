package main

import "encoding/json"

// What the service and those who call it say to each other, as JSON.
type (
	// record is one object.
	record struct {
		Key string `json:"key"`
		// ID is another one after the object was deleted and created again.
		ID string `json:"id"`
		// Version names the write that made this state: "<epoch>.<seq>".
		Version string          `json:"version"`
		Object  json.RawMessage `json:"object"`
	}
	// change is what one write did: the new state or, of a delete, the last one.
	change struct {
		Seq     int64 `json:"seq"`
		Deleted bool  `json:"deleted,omitempty"`
		record
	}
	// listing is everything, as it was after the change Seq.
	listing struct {
		Epoch   string   `json:"epoch"`
		Seq     int64    `json:"seq"`
		Objects []record `json:"objects"`
	}
	// changes are some of those after a place in the log, in order.
	changes struct {
		Epoch   string   `json:"epoch"`
		Changes []change `json:"changes"`
	}
	// refusal is a no, in the service's own words.
	refusal struct {
		Code    code   `json:"error"`
		Message string `json:"message"`
		// Version is what the object has, where the reason was that.
		Version string `json:"version,omitempty"`
	}
	// code is why the service says no.
	code string
)

const (
	codeBad        code = "bad-request"
	codeNotFound   code = "not-found"  // no object under the key
	codeExists     code = "exists"     // an object under the key
	codeConflict   code = "conflict"   // not in this version, or another object
	codeGone       code = "gone"       // the log does not reach back so far
	codeAhead      code = "ahead"      // the log has not come so far
	codeOverloaded code = "overloaded" // nothing was done; later
)
