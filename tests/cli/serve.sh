# A model behind HTTP: the text of `sample`, errors, a port that is taken, a submission, and Ctrl-C.
tiny="--set model.depth=1 --set model.width=32 --set model.head_dim=16 --set model.context=32"
run="--data world --recipe $TOP/recipes/baseline.toml $tiny --set optim.batch_tokens=256 --clock virtual:1 --set clock.max_steps=2 --unscored"
frontier data world --out world --bytes 200kB --vocab 300 >/dev/null 2>&1
frontier train $run --out one >/dev/null 2>&1
frontier serve one --port 0 >served.txt 2>err.txt &
pid=$!
for i in $(seq 200); do grep -q http served.txt && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
grep -q 'without libmicrohttpd' err.txt && { echo "built without libmicrohttpd"; exit 77; }
port=$(sed -n 's#.*127.0.0.1:\([0-9]*\)/v1.*#\1#p' served.txt)
sed "s/:$port/:PORT/" served.txt
ask() { # METHOD PATH BODY: status line's number and body
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return
    printf '%s %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" "${#3}" "$3" >&3
    tr -d '\r' <&3 | sed -n -e '1s#^HTTP/1.. \([0-9]*\).*#\1#p' -e '/^$/,$p'
    exec 3>&-
    echo
}
echo "-- paths"
ask GET /healthz ""
ask GET /v1/models "" | sed 's/"created":[0-9]*/"created":TIME/'
ask GET /metrics "" | grep -c '^frontier_'
ask GET /elsewhere ""
echo "-- completions"
ask POST /v1/completions '{"prompt": "the", "max_tokens": 12, "temperature": 0}' >reply.txt
head -n 1 reply.txt
frontier sample one --prompt the --tokens 12 --temperature 0 --json 2>/dev/null | sed 's/.*"text"://; s/}$//' >said.txt
[ -s said.txt ] && grep -qF "$(cat said.txt)" reply.txt && echo "the text of sample"
ask POST /v1/completions '{"prompt": "the", "max_tokens": 3, "temperature": 0, "stream": true}' | grep '^data: .DONE'
ask POST /v1/completions '{"prompt": "the", "max_tokens": 3, "top_p": 0}'
ask POST /v1/completions '{"prompt'
echo "-- ends"
frontier serve one --port "$port" >/dev/null 2>taken.txt; echo "port taken: exit $?"; sed "s/:$port/:PORT/" taken.txt
frontier serve one --address example >/dev/null 2>&1; echo "no address: exit $?"
frontier serve nowhere >/dev/null 2>&1; echo "no run: exit $?"
kill -TERM $pid; wait $pid; echo "ended: exit $?"
