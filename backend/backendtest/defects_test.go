package backendtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
)

// defects are what can be wrong with an adapter, each with the check that is made
// for it. with changes what the model has, for defects that show only then.
var defects = []struct {
	bad   string
	check string
	with  func(*traits)
}{
	{"gap between list and watch", "list/cursor", nil},
	{"inclusive cursor", "list/cursor", nil},
	{"inclusive cursor", "watch/whole-steps", nil},
	{"replay below the cursor", "list/cursor", nil},
	{"replay below the cursor", "watch/whole-steps", nil},
	{"object version used as cursor", "list/cursor", nil},
	{"no cursor of an empty list", "list/cursor", nil},
	{"a transaction split over two cursors", "watch/whole-steps", nil},
	{"reordered events", "watch/whole-steps", nil},
	{"key order", "watch/key-order", nil},
	{"silent after a while", "watch/whole-steps", nil},
	{"commits out of order", "watch/concurrent-writers", func(t *traits) { t.Writes = false }},
	{"ranges share one session", "watch/each-range-a-session", nil},
	{"recovered yield panic", "watch/lets-panics-through", nil},
	{"yields from another goroutine", "watch/one-goroutine", nil},
	{"event after return", "watch/stops-after-false", nil},
	{"does not stop", "watch/stops-after-false", nil},
	{"goes on after an error", "watch/error-is-last", nil},
	{"first batch with events", "watch/first-batch", nil},
	{"no first batch", "watch/first-batch", nil},
	{"put of nothing known", "watch/batches", nil},
	{"Synced without Reset", "watch/batches", nil},
	{"Reset without Synced", "powers/initial", nil},
	{"backward cursor", "order/cursors", nil},
	{"wrong Prev", "order/cursors", nil},
	{"Compare by text", "order/cursors", nil},

	{"partial page taken for whole", "list/whole", nil},
	{"partial page taken for whole", "powers/initial", nil},
	{"Limit ignored", "list/whole", nil},
	{"an object on two pages", "list/whole", nil},
	{"page is the store's", "list/whole", nil},
	{"pages of different states", "list/pages", nil},
	{"bad token taken", "list/page-tokens", nil},
	{"compacted pages", "list/page-tokens", nil},
	{"error swallowed as an empty list", "list/failure-is-not-emptiness", nil},

	{"compaction unnoticed", "resume/compacted", nil},
	{"delete lost after a purge", "resume/forgotten", nil},
	{"epoch reused", "resume/restarted", nil},
	{"foreign cursor accepted", "resume/foreign", nil},
	{"future cursor accepted", "resume/foreign", nil},
	{"silent close", "resume/cut", nil},

	{"context ignored when idle", "ctx/watch-idle", nil},
	{"ignores its context in yield", "ctx/watch-busy", nil},
	{"List ignores its context", "ctx/list", func(t *traits) { t.Hang = true }},
	{"List ignores its context", "ctx/watch-opening", func(t *traits) { t.Hang = true }},

	{"no progress", "powers/progress", nil},
	{"keys without versions", "powers/keys-only", nil},
	{"Get answers zero", "powers/get", nil},
	{"Head behind", "powers/head", nil},
	{"Reached too early", "powers/reached", nil},
	{"Reached by text", "powers/reached", nil},
	{"Delete under a version to come", "powers/reached", nil},
	{"not modified, always", "powers/freshness", nil},
	{"resumes only so far", "watch/whole-steps", nil},
	{"JSON patches passed over", "write/patch-nothing", nil},
	{"stale list", "powers/freshness", nil},
	{"NotBefore ignored", "powers/freshness", nil},
	{"gap between list and watch", "converge", nil},

	{"ID kept on re-creation", "object/identity", nil},
	{"ID kept on re-creation", "write/ids", nil},
	{"version kept on a change", "object/identity", nil},
	{"delete without a key", "object/identity", nil},

	{"keys in lower case", "object/keys", nil},
	{"Get by prefix", "object/keys", nil},

	{"rot left out", "object/undecodable", nil},
	{"rot told as a delete", "object/undecodable", nil},
	{"rot told as an object", "object/undecodable", nil},
	{"rot takes others with it", "object/undecodable", nil},
	{"rot without a reason", "watch/batches", nil},

	{"no version accepted", "write/no-version", nil},
	{"preconditions not checked", "write/preconditions", nil},
	{"Delete looks first", "write/preconditions", nil},
	{"Update brings back", "write/any-waits-its-turn", nil},
	{"Any fails when others write", "write/any-waits-its-turn", nil},
	{"Create overwrites", "write/create-exists", nil},
	{"Create without a key", "write/create-exists", nil},
	{"answers what was given", "write/answers", nil},
	{"another ID accepted", "write/ids", nil},
	{"Delete under the old version", "write/delete-version", nil},
	{"patch not atomic", "write/patch-in-place", nil},
	{"patch not atomic", "write/patch-one-step", nil},
	{"patch of nothing writes", "write/patch-nothing", nil},
	{"lost answer reported as a failure", "write/lost-answer", nil},
	{"unsupported, but done", "write/unsupported", func(t *traits) { t.Patch = false }},
	{"stale list", "write/seen-by-reads", nil},
	{"dry run that writes", "write/dry-run", nil},
	{"objects changed in place", "write/shared", nil},

	{"preconditions not checked", "soft/preconditions", nil},
}

func TestEveryDefectIsCaughtByTheCheckMadeForIt(t *testing.T) {
	for _, d := range defects {
		t.Run(d.bad+" by "+d.check, func(t *testing.T) {
			tr := everything()
			if d.with != nil {
				d.with(&tr)
			}
			r := kit(t, tr, d.bad)
			var failed []string
			for _, res := range r.Failed() {
				failed = append(failed, res.Name)
			}
			if !slices.Contains(failed, d.check) {
				t.Errorf("not among the failures: %q\n%v", failed, r)
			}
			t.Logf("%v", r)
		})
	}
}

// A check that nothing fails shows nothing.
func TestEveryCheckHasADefect(t *testing.T) {
	with := map[string]bool{}
	for _, d := range defects {
		with[d.check] = true
	}
	for _, c := range backendtest.Checks() {
		// Those of soft deletion are of backend.WithFinalizers, which is shown to be
		// right elsewhere.
		if !with[c.Name] && !strings.HasPrefix(c.Name, "soft/") {
			t.Errorf("nothing is known to fail %s", c.Name)
		}
	}
	for _, d := range defects {
		if !slices.ContainsFunc(backendtest.Checks(), func(c backendtest.Check) bool { return c.Name == d.check }) {
			t.Errorf("there is no check %s", d.check)
		}
	}
}
