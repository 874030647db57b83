# SPDX-License-Identifier: Apache-2.0

@test "language" in RRFP.presets() && length(RRFP.presets()) >= 5

let simulation = Simulation(preset = "language", hint = "rf-1", stages = 4, microbatches = 8)
    step = run!(simulation, 1)
    @test step.ranks == 4 && step.microbatches == 8 && step.makespan_ns >= step.bound_ns > 0
    @test run!(simulation, 1) == step && run!(simulation, 2) != step
    @test occursin("rf-1", RRFP.describe(simulation))
    mktempdir() do folder
        path = joinpath(folder, "t.json")
        RRFP.write_trace(path, simulation)
        RRFP.draw(path, joinpath(folder, "t.svg"))
        @test filesize(joinpath(folder, "t.svg")) > 1000
        @test throws(() -> RRFP.draw(text_file, joinpath(folder, "x.svg")), :BAD_DATA)
        measured = Simulation(trace = path, hint = "1f1b")
        @test run!(measured).tasks > 0
    end
    close(simulation)
    @test throws(() -> run!(simulation), :NULL_HANDLE, "Simulation")
end
@test run!(Simulation(preset = "ideal", hint = "1f1b", order = :strict, stages = 4)).tasks > 0
@test throws(() -> Simulation(preset = "no such"), :UNKNOWN_NAME, "no such")
@test_throws ArgumentError Simulation(preset = "ideal", order = :no_such)

let seen = Int[]
    report = RRFP.stress(1, 200; progress = done -> (push!(seen, done); true))
    @test report.cases == 200 && report.stalls == 0 && report.cap_violations == 0
    @test report.task_errors == 0 && report.bad_case == ""
    @test !isempty(seen) && issorted(seen)
    @test RRFP.stress(1, 10^6; progress = done -> false).cases < 10^6
    @test_throws ErrorException RRFP.stress(1, 10^6; progress = done -> error("enough"))
end
