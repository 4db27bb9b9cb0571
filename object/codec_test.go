package object_test

import (
	"testing"

	"github.com/homeostat/homeostat/object"
)

func TestJSON_GivesBackWhatItWasGiven(t *testing.T) {
	var codec object.Codec[Pod] = object.JSON[Pod]{}
	pod := Pod{Meta: object.Meta{Labels: map[string]string{"app": "wéb"}}, Command: []string{"a", ""}}
	data, err := codec.Encode(pod)
	if err != nil {
		t.Fatal(err)
	}
	back, err := codec.Decode(data)
	if err != nil || back.Labels["app"] != "wéb" || len(back.Command) != 2 {
		t.Errorf("%s came back as %+v, %v", data, back, err)
	}
}

func TestJSON_SaysWhatItCannotRead(t *testing.T) {
	if _, err := (object.JSON[Pod]{}).Decode([]byte(`{"command":`)); err == nil {
		t.Error("half an object was taken for a whole one")
	}
	if _, err := (object.JSON[chan int]{}).Encode(nil); err == nil {
		t.Error("a channel has no JSON, and nothing was said")
	}
}
