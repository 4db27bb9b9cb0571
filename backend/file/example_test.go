package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/reflector"
)

func Example() {
	type service struct {
		Name     string `json:"name"`
		Replicas int    `json:"replicas"`
	}
	dir, _ := os.MkdirTemp("", "manifests")
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("name: web\nreplicas: 3\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "broken.yaml"), []byte("name: mail\nreplicas: a few\n"), 0o644)

	src, err := file.New(dir, func(s service) string { return s.Name }, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := src.List(context.Background(), reflector.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range page.Items {
		fmt.Println(item.Key, item.Object.Replicas)
	}
	for _, fault := range src.Faults() {
		fmt.Println(filepath.Base(fault.File), "line", fault.Line, fault.Err)
	}
	// Output:
	// web 3
	// broken.yaml line 2 invalid: replicas: string where int is wanted
}
