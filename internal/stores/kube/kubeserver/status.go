package kubeserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Status is the body of every failure, and of some answers.
type Status struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Metadata   StatusMeta `json:"metadata"`
	Status     string     `json:"status"`
	Message    string     `json:"message,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Details    *Details   `json:"details,omitempty"`
	Code       int        `json:"code,omitempty"`
}

// StatusMeta is the metadata of a Status.
type StatusMeta struct {
	Continue string `json:"continue,omitempty"`
}

// Details say more about a failure.
type Details struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	UID               string  `json:"uid,omitempty"`
	Causes            []Cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

// Cause is one of several reasons.
type Cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// Error makes a Status an error.
func (s *Status) Error() string { return s.Message }

func failure(code int, reason, message string, details *Details) *Status {
	return &Status{
		Kind: "Status", APIVersion: "v1", Status: "Failure",
		Message: message, Reason: reason, Details: details, Code: code,
	}
}

func (r *resource) status(code int, reason, name, message string) *Status {
	return failure(code, reason, message, &Details{Name: name, Group: r.group, Kind: r.plural})
}

// qualified is how messages name a resource.
func (r *resource) qualified() string {
	if r.group == "" {
		return r.plural
	}
	return r.plural + "." + r.group
}

func (r *resource) notFound(name string) *Status {
	return r.status(http.StatusNotFound, "NotFound", name, fmt.Sprintf("%s %q not found", r.qualified(), name))
}

func (r *resource) exists(name string) *Status {
	return r.status(http.StatusConflict, "AlreadyExists", name, fmt.Sprintf("%s %q already exists", r.qualified(), name))
}

func (r *resource) conflict(name, why string) *Status {
	return r.status(http.StatusConflict, "Conflict", name,
		fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", r.qualified(), name, why))
}

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func (r *resource) forbidden(user, verb, ns string) *Status {
	return failure(http.StatusForbidden, "Forbidden", fmt.Sprintf(
		"%s is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q",
		r.qualified(), user, verb, r.plural, r.group, ns), &Details{Group: r.group, Kind: r.plural})
}

func (r *resource) invalid(name string, causes ...Cause) *Status {
	kind := r.kind
	if r.group != "" {
		kind += "." + r.group
	}
	return invalid(r.group, r.kind, kind, name, causes...)
}

func invalid(group, kind, qualified, name string, causes ...Cause) *Status {
	text := ""
	for i, c := range causes {
		if i > 0 {
			text += ", "
		}
		text += c.Field + ": " + c.Message
	}
	if len(causes) > 1 {
		text = "[" + text + "]"
	}
	return failure(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("%s %q is invalid: %s", qualified, name, text),
		&Details{Name: name, Group: group, Kind: kind, Causes: causes})
}

func forbiddenOption(field, why string) *Status {
	return invalid("meta.k8s.io", "ListOptions", "ListOptions.meta.k8s.io", "",
		Cause{Reason: "FieldValueForbidden", Message: "Forbidden: " + why, Field: field})
}

func badRequest(format string, args ...any) *Status {
	return failure(http.StatusBadRequest, "BadRequest", fmt.Sprintf(format, args...), nil)
}

func expired(message string) *Status {
	return failure(http.StatusGone, "Expired", message, nil)
}

func tooLarge(want, has uint64) *Status {
	return failure(http.StatusGatewayTimeout, "Timeout",
		fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", want, has),
		&Details{
			Causes:            []Cause{{Reason: "ResourceVersionTooLarge", Message: "Too large resource version"}},
			RetryAfterSeconds: 1,
		})
}

func unsupportedMediaType() *Status {
	return failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "415: Unsupported Media Type", &Details{})
}

// Unavailable is what a server answers that is starting, stopping or has too much
// to do: 429 or 503, with the seconds to wait.
func Unavailable(code, seconds int) *Status {
	reason := "ServiceUnavailable"
	if code == http.StatusTooManyRequests {
		reason = "TooManyRequests"
	}
	return failure(code, reason, "the server is currently unable to handle the request", &Details{RetryAfterSeconds: seconds})
}

// ServeHTTP answers s.
func (s *Status) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(s.Details.RetryAfterSeconds))
	}
	answer(w, s.Code, s)
}

func answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(text, '\n'))
}
