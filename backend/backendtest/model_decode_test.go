package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/homeostat/homeostat/reflector"
)

// rotten is what nobody can decode.
var rotten = thing{Text: "rotten"}

var errRotten = errors.New("it is rotten")

func isRotten(t thing) bool { return reflect.DeepEqual(t, rotten) }

// decoding is a model as its adapter shows it.
type decoding struct{ *model }

func (d decoding) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[thing], error) {
	page, err := d.model.List(ctx, opts)
	if err != nil {
		return page, err
	}
	for i := 0; i < len(page.Items); i++ {
		it := page.Items[i]
		if !isRotten(it.Object) || d.bad == "rot told as an object" {
			continue
		}
		if d.Fails {
			return reflector.Page[thing]{}, fmt.Errorf("object %q: %w", it.Key, errRotten)
		}
		page.Items = append(page.Items[:i:i], page.Items[i+1:]...)
		i--
		if d.bad != "rot left out" {
			page.Faults = append(page.Faults, reflector.Fault{Key: it.Key, Version: it.Version, Err: errRotten})
		}
	}
	if d.bad == "rot takes others with it" && len(page.Faults) > 0 {
		page.Items = nil
	}
	return page, nil
}

func (d decoding) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[batch, error] {
	inner := d.model.Watch(ctx, opts)
	return func(yield func(batch, error) bool) {
		inner(func(b batch, err error) bool {
			var events []event
			for _, e := range b.Events {
				switch {
				case e.Op != reflector.OpPut || !isRotten(e.Object) || d.bad == "rot told as an object":
					events = append(events, e)
				case d.Fails:
					yield(batch{}, fmt.Errorf("object %q: %w: %w", e.Key, errRotten, reflector.ErrExpired))
					return false
				case d.bad == "rot left out":
				case d.bad == "rot told as a delete":
					events = append(events, reflector.Delete[thing](e.Key, "").Events...)
				default:
					b.Faults = append(b.Faults, reflector.Fault{Key: e.Key, Version: e.Version, Err: errRotten})
				}
			}
			if d.bad == "rot takes others with it" && len(b.Faults) > 0 {
				events = nil
			}
			if d.bad == "rot without a reason" {
				for i := range b.Faults {
					b.Faults[i].Err = nil
				}
			}
			b.Events = events
			return yield(b, err)
		})
	}
}
