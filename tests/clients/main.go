// A pull request through the queue, with the client of openapi-generator.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	signalbox "signalbox"
)

func check(holds bool, what ...interface{}) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func main() {
	number, err := strconv.ParseInt(os.Getenv("SIGNALBOX_PR"), 10, 64)
	check(err == nil, err)
	configuration := signalbox.NewConfiguration()
	configuration.Servers = signalbox.ServerConfigurations{{URL: os.Getenv("SIGNALBOX_URL")}}
	keys := map[string]signalbox.APIKey{"ApiKeyAuth": {Key: os.Getenv("SIGNALBOX_TOKEN")}}
	ctx := context.WithValue(context.Background(), signalbox.ContextAPIKeys, keys)
	api := signalbox.NewAPIClient(configuration).MergeQueueAPI
	repo := *signalbox.NewRepoRef("git.local", "acme", "calc")

	pr := *signalbox.NewPrByNumber(signalbox.Int64AsPrNumberChoice(&number))
	submit := *signalbox.NewSubmitRequest(repo, "main", pr)
	_, reply, err := api.SubmitPullRequest(ctx).SubmitRequest(submit).Execute()
	check(err == nil && reply.StatusCode == 200, err, reply)

	either := *signalbox.NewPrByEither()
	either.SetNumber(signalbox.Int64AsPrNumberChoice(&number))
	for {
		request := *signalbox.NewEntryRequest(repo, "main", either)
		entry, _, err := api.GetSubmittedPullRequest(ctx).EntryRequest(request).Execute()
		check(err == nil, err)
		check(entry.State != signalbox.PRSTATEWORD_FAILED, entry)
		if entry.State == signalbox.PRSTATEWORD_MERGED {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}

	queue, _, err := api.GetQueue(ctx).QueueRequest(*signalbox.NewQueueRequest(repo, "main")).Execute()
	check(err == nil && queue.Concurrency == 2, err, queue)
}
