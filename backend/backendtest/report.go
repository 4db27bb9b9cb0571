package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Check is one thing that the kit looks at.
type Check struct {
	// Name is short and stable: "watch/whole-steps".
	Name string
	// Rules are those that the check is made for, by package and number:
	// "reflector 3", "backend 9", and "backend soft 1" for soft deletion.
	Rules []string
	// What says what is expected, in a sentence.
	What string
}

// Result is what came of a check.
type Result struct {
	Check
	// Err says what was not as expected; nil when all was, or when the check was
	// skipped.
	Err error
	// Skipped says what the store or the harness lacks for this check; "" when
	// it was made.
	Skipped string
	// Took is how long it took.
	Took time.Duration
}

// Report is what came of all checks.
type Report struct {
	Results []Result
	// Lacks lists, sorted, what there is not:
	//
	//   - the powers that the source does not have, by their names in
	//     reflector.Powers ("Paged", "Compare" …), "StaleLists" when it has that
	//     weakness, and "Cursors" when it has no positions;
	//   - "Versions" and "IDs" when its objects have none;
	//   - "Backend" when it can't be written to; else what the write side answers
	//     with errors.ErrUnsupported ("DryRun", "Patch" …);
	//   - "Transactions" when several changes can't be written in one step, and the
	//     functions that the harness does not have ("Harness.Cut" …).
	Lacks []string
}

// Failed are the results with an error.
func (r Report) Failed() []Result {
	var failed []Result
	for _, res := range r.Results {
		if res.Err != nil {
			failed = append(failed, res)
		}
	}
	return failed
}

// Err joins the errors of all checks, each with its check's name; nil if there is none.
func (r Report) Err() error {
	var all []error
	for _, res := range r.Failed() {
		all = append(all, fmt.Errorf("%s: %w", res.Name, res.Err))
	}
	return errors.Join(all...)
}

// String is the report as a table, what is lacking below it.
func (r Report) String() string {
	var b strings.Builder
	wide := 0
	for _, res := range r.Results {
		wide = max(wide, len(res.Name))
	}
	failed, skipped := 0, 0
	for _, res := range r.Results {
		verdict, more := "ok", ""
		switch {
		case res.Err != nil:
			verdict, more = "FAIL", strings.ReplaceAll(res.Err.Error(), "\n", "\n"+strings.Repeat(" ", wide+8))
			failed++
		case res.Skipped != "":
			verdict, more = "skip", "lacks "+res.Skipped
			skipped++
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-4s  %-*s  %s", verdict, wide, res.Name, more), " "))
	}
	fmt.Fprintf(&b, "%d checks, %d failed, %d skipped\n", len(r.Results), failed, skipped)
	if len(r.Lacks) > 0 {
		fmt.Fprintf(&b, "lacks %s\n", strings.Join(r.Lacks, ", "))
	}
	return b.String()
}
