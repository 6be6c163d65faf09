// A shard a task, then the merge, for Nextflow (DSL 2):
//
//     nextflow run main.nf --shards 8 --out evaluation --command 'eval --model /models/mine --corpus /data/test.h5 --generations 2k'
//
// Tasks run in folders of their own, so names of files in the command are whole ones. A task that is tried again begins anew.

params.shards = 8
params.out = 'merged'
params.command = null

process shard {
    errorStrategy 'retry'
    maxRetries 2

    input:
    val number

    output:
    path "shard-${number}"

    script:
    "drift ${params.command} --shard ${number}/${params.shards} -o shard-${number}"
}

process merge {
    publishDir params.out, mode: 'copy'

    input:
    path shards

    output:
    path 'merged'

    script:
    "drift merge ${shards} -o merged"
}

workflow {
    Channel.of(1..params.shards.toInteger()) | shard | collect | merge
}
