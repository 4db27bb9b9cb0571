package kubeserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// Put writes an object past the network, created or replaced, whoever wrote it
// last. The path is that of its collection ("/api/v1/namespaces/shop/configmaps").
func (s *Server) Put(path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	d, err := read(text)
	if err != nil {
		return err
	}
	delete(d.meta(), "resourceVersion")
	delete(d.meta(), "uid")
	status := s.call(http.MethodPut, path+"/"+d.field("metadata.name"), d.text())
	if status != nil && status.Code == http.StatusNotFound {
		status = s.call(http.MethodPost, path, d.text())
	}
	return failed(status)
}

// Delete deletes an object, whoever wrote it last; that there is none is no error.
func (s *Server) Delete(path, name string) error {
	status := s.call(http.MethodDelete, path+"/"+name, nil)
	if status != nil && status.Code == http.StatusNotFound {
		return nil
	}
	return failed(status)
}

// failed keeps a nil *Status from being an error.
func failed(s *Status) error {
	if s == nil {
		return nil
	}
	return s
}

// call writes as a request does, but neither refused nor lost.
func (s *Server) call(method, path string, body []byte) *Status {
	r, err := http.NewRequest(method, path, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return badRequest("%v", err)
	}
	req := parse(r)
	if req == nil {
		return badRequest("nothing is served at %s", path)
	}
	_, _, status := s.write(r, req, req.verb(method))
	return status
}
